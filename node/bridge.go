package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/openflow"
)

const (
	askSoon    = 50 * time.Millisecond  // for the entries, once they were wrong; then twice that, …
	askEvery   = time.Second            // up to this
	answerTime = 10 * time.Second       // for an answer of the bridge
	tryAgain   = 100 * time.Millisecond // to reach the bridge
)

// keepEntries has the node's bridge have the node's entries, until ctx ends: at
// once when it is there, and whenever somebody has removed them.
func (k *keeping) keepEntries(ctx context.Context) {
	said := ""
	for {
		err := k.keepConnected(ctx, func() { said = "" })
		k.light.Store(false)
		if ctx.Err() != nil {
			return
		}
		if text := err.Error(); text != said {
			k.log.Warn("the bridge is not reached", "error", err)
			said = text
		}
		if backoff.Sleep(ctx, tryAgain) != nil {
			return
		}
	}
}

// keepConnected is keepEntries while the bridge can be reached.
func (k *keeping) keepConnected(ctx context.Context, reached func()) error {
	b, err := dialBridge(ctx, k.Management)
	if err != nil {
		return err
	}
	defer b.conn.Close()
	stop := context.AfterFunc(ctx, func() { b.conn.Close() })
	defer stop()
	for pauses := (backoff.Exponential{First: askSoon, Last: askEvery}); ; {
		entries, whole := k.entries()
		wrong, err := b.wrong(entries)
		if err != nil {
			return err
		}
		if !whole { // of tunnels, it is not known which there are
			wrong = slices.DeleteFunc(wrong, func(m flow.Mod) bool { return m.Command != flow.Add })
		}
		if len(wrong) > 0 {
			if err := b.change(wrong); err != nil {
				return err
			}
			k.log.Info("the node's entries put right", "changed", len(wrong), "of", len(entries))
			pauses.Reset() // a bridge that has just been made may be emptied once more
		}
		reached()
		k.light.Store(true)
		if err := pauses.Wait(ctx); err != nil {
			return err
		}
	}
}

// Dark reports whether the node's bridge lacks any of its entries, or cannot be asked.
func (n *Node) Dark(ctx context.Context) bool {
	b, err := dialBridge(ctx, n.Management)
	if err != nil {
		return true
	}
	defer b.conn.Close()
	stop := context.AfterFunc(ctx, func() { b.conn.Close() })
	defer stop()
	wrong, err := b.wrong(n.Entries())
	return err != nil || slices.ContainsFunc(wrong, func(m flow.Mod) bool { return m.Command == flow.Add })
}

// bridge is a connection to a bridge by its management socket.
type bridge struct {
	conn net.Conn
	xid  uint32
	in   []byte
}

const version = openflow.V13

func dialBridge(ctx context.Context, socket string) (*bridge, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connect to the bridge: %w", err)
	}
	b := &bridge{conn: conn}
	if err := b.send(version.AppendHello(nil, b.next(), version)); err != nil {
		conn.Close()
		return nil, err
	}
	return b, nil
}

func (b *bridge) next() uint32 {
	b.xid++
	return b.xid
}

func (b *bridge) send(msg []byte) error {
	_ = b.conn.SetDeadline(time.Now().Add(answerTime))
	_, err := b.conn.Write(msg)
	return err
}

// answer returns the next answer to a request. Meanwhile it answers the bridge's
// own requests.
func (b *bridge) answer(xid uint32) ([]byte, error) {
	for {
		msg, err := b.read()
		if err != nil {
			return nil, err
		}
		h, err := openflow.ParseHeader(msg)
		if err != nil {
			return nil, err
		}
		switch {
		case h.Type == openflow.TypeHello:
			if versions, err := openflow.DecodeHello(msg); err != nil || !versions.Has(version) {
				return nil, errors.New("the bridge does not speak OpenFlow 1.3: add it to the bridge's protocols")
			}
		case h.Type == openflow.TypeEchoRequest:
			reply, err := version.AppendEchoReply(nil, h.Xid, msg[openflow.HeaderLen:])
			if err == nil {
				err = b.send(reply)
			}
			if err != nil {
				return nil, err
			}
		case h.Type == openflow.TypeError:
			e, err := version.DecodeError(msg)
			if err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("the bridge refuses: %w", &e)
		case h.Xid == xid:
			return msg, nil
		}
	}
}

// read returns the next message of the bridge.
func (b *bridge) read() ([]byte, error) {
	for {
		msg, rest, err := openflow.Next(b.in)
		if err != nil || msg != nil {
			b.in = rest
			return msg, err
		}
		buf := make([]byte, 16<<10)
		n, err := b.conn.Read(buf)
		if err == io.EOF {
			return nil, errors.New("the bridge has closed the connection")
		}
		if err != nil {
			return nil, err
		}
		b.in = append(b.in[:len(b.in):len(b.in)], buf[:n]...)
	}
}

// wrong returns what has to be changed for the bridge to have these entries of
// the node's, and no others.
func (b *bridge) wrong(entries []flow.Entry) ([]flow.Mod, error) {
	xid := b.next()
	req, err := version.AppendMultipartRequest(nil, xid, &openflow.MultipartRequest{
		Type: openflow.MultipartFlow, Table: flow.TableIngress, OutPort: flow.PortAny, OutGroup: flow.GroupAny,
		Cookie: flow.NodeCookie, CookieMask: ^flow.Cookie(0),
	})
	if err != nil {
		return nil, err
	}
	if err := b.send(req); err != nil {
		return nil, err
	}
	has := map[flow.EntryKey]flow.Entry{}
	for more := true; more; {
		msg, err := b.answer(xid)
		if err != nil {
			return nil, err
		}
		reply, err := version.DecodeMultipartReply(msg)
		if err != nil {
			return nil, err
		}
		more = reply.More
		err = version.DecodeFlowStats(reply.Body, func(s *openflow.FlowStats) error {
			has[s.Key()] = s.Clone()
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var wrong []flow.Mod
	change := func(c flow.Command, e flow.Entry) {
		wrong = append(wrong, flow.Mod{Command: c, Entry: e, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny})
	}
	for i := range entries {
		e := &entries[i]
		if is, ok := has[e.Key()]; !ok || !e.Same(&is) {
			change(flow.Add, *e)
		}
		delete(has, e.Key())
	}
	for _, e := range has {
		change(flow.DeleteStrict, e)
	}
	return wrong, nil
}

// change changes entries, and returns once the bridge has done so.
func (b *bridge) change(mods []flow.Mod) error {
	var msg []byte
	var err error
	for i := range mods {
		if msg, err = version.AppendFlowMod(msg, b.next(), &mods[i]); err != nil {
			return err
		}
	}
	xid := b.next()
	if err := b.send(version.AppendBarrierRequest(msg, xid)); err != nil {
		return err
	}
	_, err = b.answer(xid)
	return err
}
