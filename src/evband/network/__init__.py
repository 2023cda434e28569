"""The ensemble network: LSTM, heads, anchors. Needs torch and numpy only."""
