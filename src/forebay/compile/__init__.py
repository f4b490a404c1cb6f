"""Step 2: nodes become a frozen Plan. The passes in order: graph, place, fold, cut."""
