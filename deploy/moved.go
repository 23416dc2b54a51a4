package deploy

import (
	"strings"

	"weft/flow"
)

// stray reports whether an event says that a switch, or something of it, is
// gone, and its publisher's partition is not that of the switch any more: a plan
// has moved it, and its new owner speaks of it. Services of the partition that it
// has left are to hear of it; those of all partitions are not.
func (v *view) stray(sub *subject, key string, event any, partition string) bool {
	if partition == "" || v.mine.Partition != "" || v.current == nil || !sub.decl.GoneBy(event) {
		return false
	}
	text, _, _ := strings.Cut(key, "/")
	sw, err := flow.ParseDPID(text)
	if err != nil || len(text) != 16 {
		return false
	}
	owner := v.current.plan.PartitionOf(sw)
	return owner != "" && owner != partition && v.current.plan.Partition(partition) != nil
}
