package grpc

import (
	"sync/atomic"

	"google.golang.org/grpc/mem"

	"github.com/weft-sdn/weft/transport/mux"
)

// stream is either side of the stream of a link.
type stream interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

// link is a mux.Link over a stream.
type link struct {
	stream
	in  func() uint64 // octets that have come
	end func()        // ends the stream
	// queued is how many bytes gRPC has accepted and not yet written. At 64 KiB
	// SendMsg waits (defaultWriteQuota).
	queued atomic.Int64
	recv   message
}

// quota is how much may be queued before SendMsg waits.
const quota = 48 << 10

func (l *link) Read() (*mux.Buffer, error) {
	l.recv.got = nil
	if err := l.RecvMsg(&l.recv); err != nil {
		return nil, err
	}
	return l.recv.got, nil
}

func (l *link) Write(b *mux.Buffer) error {
	l.queued.Add(int64(len(b.B)))
	return l.SendMsg(&message{send: mem.NewBuffer(&b.B, &release{l, b})})
}

func (l *link) Room(n int) bool { return l.queued.Load()+int64(n) < quota }

func (l *link) Heard() uint64 { return l.in() }

func (l *link) Close() error {
	l.end()
	return nil
}

// release releases a buffer when gRPC has written it.
type release struct {
	link *link
	b    *mux.Buffer
}

// Get is not used: gRPC only returns the buffers that it was given.
func (r *release) Get(n int) *[]byte { b := make([]byte, n); return &b }

func (r *release) Put(*[]byte) {
	r.link.queued.Add(-int64(len(r.b.B)))
	r.b.Release()
}
