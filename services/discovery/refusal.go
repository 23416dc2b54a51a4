package discovery

// refusal says why an LLDP frame was rejected as evidence of a link.
type refusal uint8

// The reasons.
const (
	accepted   refusal = iota
	foreign            // LLDP or BDDP of another sender
	malformed          // broken TLVs
	forged             // looks like ours, but the signature is wrong
	stale              // older than max_age, or from the future
	replayed           // not newer than an earlier one from the same port
	unknown            // sent or received by a port that does not exist or is down
	second             // one of the two ports has another live neighbour
	looped             // comes back to the switch that sent it
	hostPort           // joins two ports that have been host ports for long
	noLinkPort         // joins a port that is not in link_ports
	listed             // joins a port of a hybrid node that is a customer's, internal or a tunnel
	waiting            // slower than a cable so far; the link waits
	outlier            // slower than a cable, or new where new links are held; the link is held
	excessive          // beyond the rate of the port, not examined
	refusals
)

// String returns the reason as metrics and logs name it.
func (r refusal) String() string {
	return [...]string{"accepted", "foreign", "malformed", "forged", "stale", "replayed", "unknown_port",
		"second_neighbour", "looped", "host_port", "not_link_port", "listed_port", "waits", "held", "rate"}[r]
}
