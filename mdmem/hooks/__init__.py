"""Claude Code's events: parse the payload, call one service, print one JSON object or nothing."""
