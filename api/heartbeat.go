package api

// HeartbeatChangedEvent tells whether a switch answers.
var HeartbeatChangedEvent = Subject[HeartbeatChanged]{
	Name: "heartbeat.HeartbeatChanged",
	Key:  func(e *HeartbeatChanged) string { return e.GetDpid() },
	Gone: func(e *HeartbeatChanged) bool { return e.GetState() == "away" },
}
