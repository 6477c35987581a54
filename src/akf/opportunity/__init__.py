"""From hotspots to Tasks. Step 1 opens Tasks that a person wrote; triage follows with the importers."""
