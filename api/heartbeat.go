package api

// The call of the heartbeat, and what it asks of the southbound: an echo to
// each of many switches, answered when all have answered or time is up.
var (
	ListHeartbeats = Method[ListHeartbeatsRequest, ListHeartbeatsResponse]{"heartbeat.ListHeartbeats"}
	EchoSwitches   = Method[EchoSwitchesRequest, EchoSwitchesResponse]{"southbound.EchoSwitches"}
)

// HeartbeatChangedEvent tells whether a switch answers.
var HeartbeatChangedEvent = Subject[HeartbeatChanged]{
	Name: "heartbeat.HeartbeatChanged",
	Key:  func(e *HeartbeatChanged) string { return e.GetDpid() },
	Gone: func(e *HeartbeatChanged) bool { return e.GetState() == "away" },
}
