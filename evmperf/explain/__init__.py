"""Why a figure is what it is: what differs between runs, boots part by part, the proof of a cause."""
