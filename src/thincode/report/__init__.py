"""What we show. Reads run folders only; imports no torch, no engine, no interpreter."""
