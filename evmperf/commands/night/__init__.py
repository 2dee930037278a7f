"""A lab's night: many boards measured side by side by one command, and judged."""
