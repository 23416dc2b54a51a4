package api

import "fmt"

// ListLimits tells which ports' packet-ins are limited.
var ListLimits = Method[ListLimitsRequest, ListLimitsResponse]{"southbound.ListLimits"}

// FloodChangedEvent tells of a port whose packet-ins are limited now, or are
// no longer.
var FloodChangedEvent = Subject[FloodChanged]{
	Name: "southbound.FloodChanged",
	Key: func(e *FloodChanged) string {
		return fmt.Sprintf("%s/%d", e.GetLimit().GetDpid(), e.GetLimit().GetPort())
	},
	Gone: func(e *FloodChanged) bool { return e.GetEnded() },
}
