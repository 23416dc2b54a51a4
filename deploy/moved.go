package deploy

import (
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// stray reports whether an event is not for a service of this process, as it says
// that a switch, or something of it, is gone, while a plan has moved that to
// another partition than the publisher's: its new owner speaks of it. Services of
// the partition that it has left are to hear of it; those of all partitions, or as
// one, are not.
func (v *view) stray(service string, sub *subject, key string, event any, partition string) bool {
	return (v.mine.Partition == "" || v.parts.worksAsOne(service)) && v.disowned(sub, key, event, partition)
}

// disowned reports whether an event says that something of a switch is gone that
// is of another partition than the publisher's.
func (v *view) disowned(sub *subject, key string, event any, partition string) bool {
	if partition == "" || v.current == nil || !sub.decl.GoneBy(event) {
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
