"""Studies of domain adaptation: networks are trained, task by task, and their outputs judged."""
