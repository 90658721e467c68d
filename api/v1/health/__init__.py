"""What operators watch: health and metrics."""
