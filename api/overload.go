package api

import "fmt"

// FloodChangedEvent tells of a port whose packet-ins are limited now, or are
// no longer.
var FloodChangedEvent = Subject[FloodChanged]{
	Name: "southbound.FloodChanged",
	Key: func(e *FloodChanged) string {
		return fmt.Sprintf("%s/%d", e.GetLimit().GetDpid(), e.GetLimit().GetPort())
	},
	Gone: func(e *FloodChanged) bool { return e.GetEnded() },
}
