package discovery

// refusal says why an LLDP frame was not taken as evidence of a link.
type refusal uint8

// The reasons.
const (
	accepted  refusal = iota
	foreign           // LLDP or BDDP of somebody else's
	malformed         // broken TLVs
	forged            // ours by the look of it, but the signature is wrong
	stale             // older than max_age, or from the future
	replayed          // not newer than what has come from the same port already
	unknown           // sent or received by a port that does not exist or is down
	second            // one of the two ports has another neighbour that is alive
	looped            // comes back to the switch that sent it
	hostPort          // joins two ports that have been host ports for long
	outlier           // joins a host port, and took too long to be a cable
	excessive         // beyond the rate of the port, not looked at
	refusals
)

// String returns the reason as metrics and logs name it.
func (r refusal) String() string {
	return [...]string{"accepted", "foreign", "malformed", "forged", "stale", "replayed", "unknown_port",
		"second_neighbour", "looped", "host_port", "latency_outlier", "rate"}[r]
}
