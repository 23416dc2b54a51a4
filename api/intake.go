package api

// PortUsedEvent tells that a port has packets that discovery does not see.
var PortUsedEvent = Subject[PortUsed]{Name: "intake.PortUsed"}
