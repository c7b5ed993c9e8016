"""What the study ``why-it-works`` measures, and how it is shown."""
