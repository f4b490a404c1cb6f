"""`forebay demo`: the same training twice, fed by forebay and by plain DataLoader workers."""
