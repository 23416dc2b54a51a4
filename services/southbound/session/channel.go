package session

import (
	"errors"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/recovery"
)

type dpid = flow.DPID

// channel is the connection of a session: its reader and its send queue, the switch
// and the version at its other end, and whether and why it ends. Only the goroutine
// of the session reads; any goroutine may send, and end it.
type channel struct {
	shared  *Shared
	account *admission.Account // of the memory that is held for the switch
	Conn    net.Conn
	in      *reader
	out     *outbox
	claims  admission.Claims
	xid     atomic.Uint32
	count   counts
	Version openflow.Version // as the next: set once, in the handshake
	DPID    dpid
	known   atomic.Bool            // the handshake is over
	counted atomic.Bool            // counted among the refused connections
	lost    atomic.Pointer[string] // why the session ends, if the peer did not end it
	ending  atomic.Bool            // the session is closing
}

// InHandshake reports whether the session is in its handshake.
func (c *channel) InHandshake() bool {
	return !c.known.Load() && !c.ending.Load() && c.lost.Load() == nil
}

// Known reports whether the handshake is over.
func (c *channel) Known() bool { return c.known.Load() }

// Refuse counts the connection among the refused ones, once; it returns false
// if it was counted before.
func (c *channel) Refuse(why Refusal) bool {
	if c.counted.Swap(true) {
		return false
	}
	c.shared.Refused(why)
	return true
}

// MissedMessages reports whether messages were left out since the last call,
// because this process was not sure to be master.
func (c *channel) MissedMessages() bool { return c.out.missed.Swap(false) }

// write writes what the socket does not take at once, until the session ends.
// If a write fails, goroutines that wait for room in the queue stop waiting.
func (c *channel) write() {
	if err := c.out.drain(); err != nil {
		c.End("write: " + err.Error())
		c.out.close()
	}
}

// End closes the connection for a reason of ours.
func (c *channel) End(reason string) {
	c.lost.CompareAndSwap(nil, &reason)
	c.Conn.Close()
	if c.in.early != nil {
		c.in.early.stop()
	}
}

// Ending reports whether the session is closing.
func (c *channel) Ending() bool { return c.ending.Load() }

// endCause returns why the session ends: our reason if we ended it, else the read
// error.
func (c *channel) endCause(err error) error {
	if reason := c.lost.Load(); reason != nil {
		return errors.New(*reason)
	}
	return err
}

// recordExcess logs and counts an excess, and returns it. It returns other errors
// unchanged.
func (c *channel) recordExcess(err error) error {
	e := (*admission.Excess)(nil)
	if !errors.As(err, &e) {
		return err
	}
	c.shared.total.excesses[e.Bound].Add(1)
	attrs := []any{"peer", c.Conn.RemoteAddr(), "bound", string(e.Bound), "error", err}
	if c.known.Load() {
		attrs = append(attrs, "dpid", c.DPID)
	}
	c.shared.Log.Warn("switch exceeds a bound", attrs...)
	return err
}

// Garbled is the error for a malformed reply. The connection ends, because
// nothing after it can be trusted.
func (c *channel) Garbled(err error) error {
	c.End("malformed reply: " + err.Error())
	return api.Errorf(codes.Internal, "switch %v sent a malformed reply: %w", c.DPID, err)
}

// shed counts each of the messages in b, which one write has not sent.
func (c *channel) shed(err error, b []byte) {
	messages, outs := programming(b)
	c.count.shed.Add(messages)
	why := recovery.Away
	switch {
	case errors.Is(err, errQueueFull), errors.As(err, new(*admission.Excess)):
		why = recovery.QueueFull
	case errors.Is(err, errFenced):
		why = recovery.NotMaster
	}
	c.shared.tally.Shed(why, messages, outs)
}

// appendOp appends the message of one operation of d.
func (c *channel) appendOp(dst []byte, d *flow.Decision, op *flow.Op, xid uint32) ([]byte, error) {
	switch op.Kind {
	case flow.OpFlow:
		if err := c.claims.Change(&d.Flows[op.Index]); err != nil {
			return dst, err
		}
		return c.Version.AppendFlowMod(dst, xid, &d.Flows[op.Index])
	case flow.OpPacketOut:
		return c.Version.AppendPacketOut(dst, xid, &d.Outs[op.Index])
	case flow.OpGroup:
		return c.Version.AppendGroupMod(dst, xid, &d.Groups[op.Index])
	case flow.OpMeter:
		return c.Version.AppendMeterMod(dst, xid, &d.Meters[op.Index])
	}
	return dst, api.Errorf(codes.Internal, "operation of unknown kind %d", op.Kind)
}

// Seen records an entry that was read from the switch.
func (c *channel) Seen(e *flow.Entry) { c.claims.Seen(e) }
