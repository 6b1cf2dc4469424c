"""The controller process: repairs what was orphaned, wakes what waits, settles approvals, cleans up. Owns no task."""
