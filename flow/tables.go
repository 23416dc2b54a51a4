package flow

// The tables that a packet passes in a switch, in this order. Each has an entry
// of lowest priority that leads to the next (forwarding writes those), so that a
// service that does not run, or has nothing to say, is passed by. Switches with
// OpenFlow 1.0 or with fewer tables have all their entries in table 0: there
// policies are enforced by the controller alone.
const (
	TableIngress   uint8 = 0 // probes, the operator's entries, tags of virtual networks
	TableFirewall  uint8 = 1 // verdicts
	TableQoS       uint8 = 2 // marks, meters, queues
	TableTranslate uint8 = 3 // addresses: balancer, router, nat
	TableForward   uint8 = 4 // routes, multicast, what goes to the controller

	PipelineTables = 5
)

// ForwardTable returns the table of routes on a switch with so many tables
// (0 is not known) and that OpenFlow version.
func ForwardTable(tables uint32, openflow10 bool) uint8 {
	if openflow10 || tables < PipelineTables {
		return 0
	}
	return TableForward
}
