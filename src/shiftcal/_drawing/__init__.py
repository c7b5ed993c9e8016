"""What all pictures share: colours and markers, and where things stand."""
