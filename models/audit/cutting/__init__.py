"""Cutting: acts that a verified export has are deleted behind a signed anchor (`models.audit.anchors`).

export ─▶ anchors for sessions' chains ─▶ anchors for the workspace's own chain ─▶ a seal ─▶ the sweep deletes the acts
"""
