package recovery

import "sync/atomic"

// Reason is why a message was not sent to a switch.
type Reason int

// The reasons.
const (
	QueueFull  Reason = iota // the switch reads too slowly
	Away                     // it is not connected, or its connection has ended before
	Unsendable               // the message cannot be expressed in its version
	NotMaster                // this process was not master at that moment
	NotOwn                   // the entry is somebody else's
	reasons
)

// String returns the reason as metrics label it.
func (r Reason) String() string {
	return [...]string{"queue_full", "away", "unsendable", "not_master", "not_own"}[r]
}

// shed counts messages that were not sent for one reason.
type shed struct {
	messages   atomic.Uint64 // of every kind that programs a switch
	packetOuts atomic.Uint64 // of these
}

// Shed counts messages that were not sent, and how many of them are packet-outs.
func (t *Tally) Shed(why Reason, messages, packetOuts uint64) {
	t.shed[why].messages.Add(messages)
	t.shed[why].packetOuts.Add(packetOuts)
}

// ShedFor returns how many messages, and how many packet-outs of them, were not sent
// for a reason.
func (t *Tally) ShedFor(why Reason) (messages, packetOuts uint64) {
	return t.shed[why].messages.Load(), t.shed[why].packetOuts.Load()
}

func (t *Tally) registerShed(counter func(name, help string, read func() float64, labels ...string)) {
	for why := range reasons {
		s := &t.shed[why]
		counter("messages_shed_total", "Messages that program a switch and could not be sent to it, each counted, by this process and those of its name before it.",
			func() float64 { return float64(s.messages.Load()) }, "reason", why.String())
		counter("packet_outs_shed_total", "Packet-outs among the messages that could not be sent to a switch, by this process and those of its name before it.",
			func() float64 { return float64(s.packetOuts.Load()) }, "reason", why.String())
	}
}
