package api

// What an intake, which takes packets straight from switches, asks of
// flowrules: to have them sent there.
var DirectPackets = Method[DirectPacketsRequest, DirectPacketsResponse]{"flowrules.DirectPackets"}

// PortUsedEvent tells that a port has packets that discovery does not see.
var PortUsedEvent = Subject[PortUsed]{Name: "intake.PortUsed"}
