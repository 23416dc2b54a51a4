package bus

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/weft-sdn/weft/transport"
)

// A connection of the transport has two subjects, one up to the listener and
// one down to the dialer. Each carries a sequence of frames: a kind, numbers, a
// name, and a body that takes the rest. Frames travel in chunks, because NATS
// limits its messages; the chunks of a frame are consecutive. Event numbers,
// which earlier builds used, are 0.
const (
	kindCall   byte = 1 // up: id, time left in ns + 1 (0: for ever); method; request
	kindCancel byte = 2 // up: id
	kindPing   byte = 4 // up: 0, lowest id of the calls in progress
	kindBye    byte = 5 // both: the connection is closed
	kindAnswer byte = 6 // down: id, 0 or code + 1; response or text
	kindState  byte = 7 // down: 0, 0, 0, incarnation
)

// numbers is how many numbers a frame of each kind carries; -1: no such kind.
var numbers = [...]int{0: -1, kindCall: 2, kindCancel: 1, 3: -1, kindPing: 2, kindBye: 0, kindAnswer: 2, kindState: 4}

// frame is a frame of a connection.
type frame struct {
	kind byte
	n    [4]uint64
	name string
	body []byte
}

// append encodes everything but the body.
func (f *frame) append(b []byte) []byte {
	b = append(b, f.kind)
	for _, n := range f.n[:numbers[f.kind]] {
		b = binary.AppendUvarint(b, n)
	}
	if f.kind == kindCall {
		b = binary.AppendUvarint(b, uint64(len(f.name)))
		b = append(b, f.name...)
	}
	return b
}

var errFrame = errors.New("malformed frame")

// parseFrame decodes a frame, whose body shares its memory.
func parseFrame(b []byte) (f frame, err error) {
	if len(b) == 0 || int(b[0]) >= len(numbers) || numbers[b[0]] < 0 {
		return f, errFrame
	}
	f.kind, b = b[0], b[1:]
	number := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			err = errFrame
			return 0
		}
		b = b[size:]
		return n
	}
	for i := range numbers[f.kind] {
		f.n[i] = number()
	}
	if f.kind == kindCall {
		size := number()
		if size > uint64(len(b)) {
			return f, errFrame
		}
		f.name, b = string(b[:size]), b[size:]
	}
	f.body = b
	return f, err
}

const (
	// maxChunk is the largest chunk, in bytes; a server may set a lower limit.
	maxChunk = 1 << 20
	// chunkHead is the size of the largest chunk number.
	chunkHead = binary.MaxVarintLen64
	// paced is how many chunks send sends before it waits for the server, which
	// cuts off slow readers.
	paced = 4
	// maxFrame bounds a reassembled frame.
	maxFrame = transport.MaxMessage + 1<<20
	// kept is the largest buffer that is kept for reuse.
	kept = 64 << 10
)

// sender is the sending end of a subject.
type sender struct {
	conn    *nats.Conn
	subject string
	reply   string // where NATS reports that nobody subscribes

	turn turn // held by a sender: chunks of a frame are consecutive
	buf  []byte
}

func newSender(conn *nats.Conn, subject, reply string) sender {
	return sender{conn: conn, subject: subject, reply: reply, turn: newTurn()}
}

// send sends a frame. It keeps nothing of it. If it fails, the frame has not
// arrived.
func (s *sender) send(ctx context.Context, f frame) error {
	if err := s.turn.take(ctx); err != nil {
		return err
	}
	defer s.turn.leave()
	limit := maxChunk
	if m := int(s.conn.MaxPayload()); m > 0 {
		limit = min(limit, m)
	}
	head := f.append(append(s.buf[:0], 1))
	defer func() {
		if s.buf = head[:0]; cap(head) > kept {
			s.buf = nil
		}
	}()
	if len(head)+len(f.body) <= limit {
		head = append(head, f.body...)
		return s.conn.PublishRequest(s.subject, s.reply, head)
	}
	rest := [2][]byte{head[1:], f.body}
	chunk := make([]byte, 0, limit)
	for number := uint64(0); len(rest[0])+len(rest[1]) > 0; number++ {
		last := uint64(0)
		if len(rest[0])+len(rest[1]) <= limit-chunkHead {
			last = 1
		}
		chunk = binary.AppendUvarint(chunk[:0], number<<1|last)
		room := limit - chunkHead
		for i := range rest {
			n := min(room, len(rest[i]))
			chunk = append(chunk, rest[i][:n]...)
			rest[i] = rest[i][n:]
			room -= n
		}
		if err := s.conn.PublishRequest(s.subject, s.reply, chunk); err != nil {
			return err
		}
		if number%paced == paced-1 {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush waits until the server has everything that was sent before.
func (s *sender) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, awayLimit)
	defer cancel()
	return s.conn.FlushWithContext(ctx)
}

// turn is a lock with a wait that ends with a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) leave() { <-t }

// assembler reassembles the frames of a subject. It drops a frame that lacks a
// chunk.
type assembler struct {
	next uint64 // number of the next chunk; 0: of a new frame
	buf  []byte
}

// take adds a chunk and returns the frame that it completes, if any.
func (a *assembler) take(chunk []byte) (encoded []byte, whole bool) {
	n, size := binary.Uvarint(chunk)
	if size <= 0 {
		return nil, false
	}
	number, last, chunk := n>>1, n&1 == 1, chunk[size:]
	if number == 0 {
		a.buf, a.next = nil, 0
		if last {
			return chunk, true
		}
	}
	if number != a.next || len(a.buf)+len(chunk) > maxFrame {
		a.buf, a.next = nil, 0
		return nil, false
	}
	a.buf, a.next = append(a.buf, chunk...), number+1
	if !last {
		return nil, false
	}
	encoded, a.buf, a.next = a.buf, nil, 0
	return encoded, true
}

// vacated reports whether a message says that nobody received one of ours.
func vacated(m *nats.Msg) bool { return len(m.Data) == 0 && m.Header.Get("Status") == "503" }
