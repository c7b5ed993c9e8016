"""Charts as marks in a plane: facts in, places and words out. Colours are the page's."""
