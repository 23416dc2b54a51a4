package api

// Calls by which a switch is asked for everything that OpenFlow lets one ask,
// and told what no decision can tell it. A refusal by the switch is a failure
// in the ApplyResult, not an error of the call.
var (
	ReadMultipart    = Method[ReadMultipartRequest, ReadMultipartResponse]{"southbound.ReadMultipart"}
	ModifyPort       = Method[ModifyPortRequest, ApplyResult]{"southbound.ModifyPort"}
	SendExperimenter = Method[SendExperimenterRequest, ApplyResult]{"southbound.SendExperimenter"}
)
