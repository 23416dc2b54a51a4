package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/weft-sdn/weft/openflow"
)

// Floor answers every packet-in that arrives on ln with the same flow-mod but
// for the buffer_id, having read nothing of it but where it ends and that
// number. It says hello in the version of the switch, asks for the features,
// and answers echoes; nothing else. What a controller does beyond this is what
// it costs. It returns when ctx ends.
func Floor(ctx context.Context, ln net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	for {
		c, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("floor: accept: %w", err)
		}
		wg.Go(func() {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			_ = floorSession(c)
		})
	}
}

// floorAnswers is how many answers the floor writes at once.
const floorAnswers = 4096

// floorSession serves one switch until the connection ends.
func floorSession(c net.Conn) error {
	in := make([]byte, 512<<10)
	n, err := io.ReadAtLeast(c, in, openflow.HeaderLen)
	if err != nil {
		return err
	}
	v := in[0]
	greeting := []byte{v, byte(openflow.TypeHello), 0, 8, 0, 0, 0, 1, v, byte(openflow.TypeFeaturesRequest), 0, 8, 0, 0, 0, 2}
	if _, err := c.Write(greeting); err != nil {
		return err
	}
	canned, at := cannedAnswer(openflow.Version(v))
	size := len(canned)
	out := make([]byte, 0, size*floorAnswers)
	for range floorAnswers {
		out = append(out, canned...)
	}
	for {
		w, r := 0, 0
		for n-r >= openflow.HeaderLen {
			m := int(binary.BigEndian.Uint16(in[r+2:]))
			if m < openflow.HeaderLen {
				return errors.New("floor: message shorter than its header")
			}
			if n-r < m {
				break
			}
			switch openflow.Type(in[r+1]) {
			case openflow.TypePacketIn:
				copy(out[w+at:w+at+4:cap(out)], in[r+8:r+12])
				w += size
			case openflow.TypeEchoRequest:
				in[r+1] = byte(openflow.TypeEchoReply)
				if _, err := c.Write(in[r : r+m]); err != nil {
					return err
				}
			}
			r += m
			if w == cap(out) {
				if _, err := c.Write(out[:w]); err != nil {
					return err
				}
				w = 0
			}
		}
		if w > 0 {
			if _, err := c.Write(out[:w]); err != nil {
				return err
			}
		}
		copy(in, in[r:n])
		n -= r
		k, err := c.Read(in[n:])
		if err != nil {
			return err
		}
		n += k
	}
}

// cannedAnswer returns a flow-mod that floods everything, and where its
// buffer_id is.
func cannedAnswer(v openflow.Version) (msg []byte, bufferID int) {
	be := binary.BigEndian
	b := make([]byte, 80)
	b[0], b[1], b[3] = byte(v), byte(openflow.TypeFlowMod), 80
	if v == openflow.V10 { // OpenFlow 1.0.1 §5.3.3
		be.PutUint32(b[8:], 0x3fffff) // all wildcarded
		be.PutUint16(b[58:], 10)      // idle timeout
		be.PutUint16(b[62:], 1)       // priority
		be.PutUint16(b[68:], 0xffff)  // any port
		be.PutUint16(b[74:], 8)       // output
		be.PutUint16(b[76:], 0xfffb)  // flood
		return b, 64
	}
	be.PutUint16(b[26:], 10) // idle timeout, OpenFlow 1.3.5 §7.3.4.1
	be.PutUint16(b[30:], 1)  // priority
	be.PutUint32(b[36:], 0xffffffff)
	be.PutUint32(b[40:], 0xffffffff)
	be.PutUint16(b[48:], 1) // OXM match, no fields
	be.PutUint16(b[50:], 4)
	be.PutUint16(b[56:], 4) // apply-actions
	be.PutUint16(b[58:], 24)
	be.PutUint16(b[66:], 16) // output
	be.PutUint32(b[68:], 0xfffffffb)
	return b, 32
}
