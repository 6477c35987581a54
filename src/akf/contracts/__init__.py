"""What a file must say: strict JSON, canonical bytes, ids, schemas, and the problems a refusal lists."""
