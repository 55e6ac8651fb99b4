"""Worker threads of machine code: a pool that shares the parts of a job."""
