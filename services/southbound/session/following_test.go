package session

import (
	"bytes"
	"testing"

	"github.com/weft-sdn/weft/openflow"
)

// TestFollowing: of a batch the frames after the first packet are told with it,
// followMost of them, and the next ones when those have come.
func TestFollowing(t *testing.T) {
	for _, v := range []openflow.Version{openflow.V10, openflow.V13} {
		msgs := packetBatch(t, v)
		r := &reader{ws: &workspace{buf: bytes.Join(msgs, nil)}}
		r.end = len(r.ws.buf)
		for i := range msgs {
			if msg, err := r.take(); err != nil || !bytes.Equal(msg, msgs[i]) {
				t.Fatalf("%v: message %d: %x, %v", v, i, msg, err)
			}
			got := r.following(v)
			want := min(followMost, len(msgs)-1-i)
			if i%followMost != 0 {
				want = 0
			}
			if len(got) != want {
				t.Fatalf("%v: %d frames with packet %d, want %d", v, len(got), i, want)
			}
			for n, f := range got {
				if !bytes.Equal(f, v.Frame(msgs[i+1+n])) {
					t.Errorf("%v: frame %d after packet %d is %x", v, n, i, f)
				}
			}
		}
	}
}
