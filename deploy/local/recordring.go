package local

import (
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// spanRing keeps the last spans.
type spanRing struct {
	mu    sync.Mutex
	spans []entry // as a ring, once it is full
	count uint64  // of all
}

// entry is a span of the ring.
type entry struct {
	*api.WatchSpan
	head *head // of a first span that has not been read yet
}

// head is a packet as it came; it is put into words when it is read, off the
// packet path.
type head struct {
	sw     flow.DPID
	key    flow.Key
	octets int
}

func (r *spanRing) put(s entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.spans) < ringSpans {
		r.spans = append(r.spans, s)
	} else {
		r.spans[r.count%ringSpans] = s
	}
	r.count++
}

// after returns the spans after a position, the position after them, and whether
// there are more.
func (r *spanRing) after(at uint64) (list []*api.WatchSpan, next uint64, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at > r.count { // of an earlier ring
		at = 0
	}
	at = max(at, r.count-uint64(len(r.spans)))
	for ; at < r.count && len(list) < answerSpans; at++ {
		e := &r.spans[at%ringSpans]
		if h := e.head; h != nil {
			p := e.Packet
			p.Time, p.Dpid = time.Unix(0, e.Began).UTC().Format(time.RFC3339Nano), h.sw.String()
			p.InPort, p.Summary = uint32(h.key.InPort), summary(&h.key, h.octets)
			e.head = nil
		}
		list = append(list, e.WatchSpan)
	}
	return list, at, at < r.count
}
