package oftest

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// buffers are the packets that wait for a controller's word. When all are
// taken, the oldest makes room.
type buffers struct {
	last uint32
	kept []buffered // oldest first
}

type buffered struct {
	id uint32
	transit
}

// keep keeps a packet if there are buffers at all.
func (b *buffers) keep(size int, t *transit) (id uint32, ok bool) {
	if size <= 0 {
		return flow.BufferNone, false
	}
	if len(b.kept) >= size {
		b.kept = slices.Delete(b.kept, 0, 1)
	}
	b.last++
	b.kept = append(b.kept, buffered{b.last, transit{frame: slices.Clone(t.frame), in: t.in}})
	return b.last, true
}

// release returns a packet that is kept no longer.
func (b *buffers) release(id uint32) (transit, error) {
	i := slices.IndexFunc(b.kept, func(k buffered) bool { return k.id == id })
	if i < 0 {
		return transit{}, refuse(openflow.ErrBadRequest, openflow.BadRequestBufferUnknown)
	}
	t := b.kept[i].transit
	b.kept = slices.Delete(b.kept, i, i+1)
	return t, nil
}

// carriedHeaders is what a packet is known to have.
func carriedHeaders(k *flow.Key) *headers {
	h := &headers{ethType: k.EthType, proto: k.IPProto, icmpType: int(k.ICMPType)}
	if k.VLAN != 0 {
		h.tags = 1
	}
	return h
}
