"""What whoever runs a server looks at: health and metrics."""
