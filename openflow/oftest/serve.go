package oftest

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/openflow"
)

// tick is how often a device that is connected looks whether flow entries have
// timed out.
const tick = 100 * time.Millisecond

// farewell is how long what is queued may take to be sent when a connection ends.
const farewell = time.Second

// Serve is the device's end of a connection to a controller, hello included,
// until the connection or ctx ends; it closes the connection. What the device
// sends waits in memory while the controller does not read.
func (d *Device) Serve(ctx context.Context, conn net.Conn) error {
	q := &queue{more: make(chan struct{}, 1)}
	id := d.attach(&line{receive: q.put, close: q.finish})
	var writer sync.WaitGroup
	writer.Go(func() { d.write(conn, q) })
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err := d.read(ctx, id, conn)
	d.detach(id)
	_ = conn.SetWriteDeadline(time.Now().Add(farewell)) // on a connection that is closed already it means nothing
	writer.Wait()
	stop()
	conn.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// read handles the controller's messages.
func (d *Device) read(ctx context.Context, id int, conn net.Conn) error {
	buf := make([]byte, 0, 4096)
	for {
		if !d.pauseReading(ctx, id) {
			return ctx.Err()
		}
		if len(buf) == cap(buf) {
			buf = append(buf, make([]byte, cap(buf))...)[:len(buf)]
		}
		n, err := conn.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if n == 0 && err != nil {
			return err
		}
		rest := buf
		for {
			var msg []byte
			if msg, rest, err = openflow.Next(rest); err != nil {
				return err
			}
			if msg == nil {
				break
			}
			if !d.pauseReading(ctx, id) {
				return ctx.Err()
			}
			d.message(ctx, id, msg)
		}
		buf = buf[:copy(buf, rest)]
	}
}

// pauseReading waits while the device is told not to read; false is that the
// connection is over.
func (d *Device) pauseReading(ctx context.Context, id int) bool {
	for {
		d.mu.Lock()
		stopped, open := d.faults.StopReading, d.lines[id] != nil
		d.mu.Unlock()
		if !stopped || !open {
			return open
		}
		if backoff.Sleep(ctx, 5*time.Millisecond) != nil {
			return false
		}
	}
}

// message handles one message, misbehaving as it is told to.
func (d *Device) message(ctx context.Context, id int, msg []byte) {
	d.mu.Lock()
	f := d.faults
	d.mu.Unlock()
	if f.Silent {
		return
	}
	if h, err := openflow.ParseHeader(msg); err == nil && h.Type == openflow.TypeBarrierRequest && f.BarrierDelay > 0 {
		if backoff.Sleep(ctx, f.BarrierDelay) != nil {
			return
		}
	}
	d.Do(func(s *Switch) Effects { return s.Message(id, msg) })
}

// write sends what is queued, and has time pass, until the queue is finished.
func (d *Device) write(conn net.Conn, q *queue) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if d.clock != nil {
				d.Do(func(*Switch) Effects { return Effects{} })
			}
			continue
		case <-q.more:
		}
		b, last := q.take()
		if _, err := conn.Write(b); err != nil || last {
			conn.Close() // this ends read, if that has not ended
		}
		if last {
			return
		}
	}
}

// queue is what waits to be written to one connection.
type queue struct {
	mu       sync.Mutex // guards bytes and finished
	bytes    []byte
	finished bool
	more     chan struct{}
}

func (q *queue) put(b []byte) {
	q.mu.Lock()
	q.bytes = append(q.bytes, b...)
	q.mu.Unlock()
	q.wake()
}

// finish says that nothing follows: the connection is closed when all is written.
func (q *queue) finish() {
	q.mu.Lock()
	q.finished = true
	q.mu.Unlock()
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

func (q *queue) take() (b []byte, last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b, q.bytes = q.bytes, nil
	return b, q.finished
}
