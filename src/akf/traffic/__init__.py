"""From profiles, benchmarks and request traces to Capture and Workload: what runs, and where its time goes."""
