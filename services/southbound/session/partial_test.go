package session

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/services/southbound/watch"
)

// TestUnfinishedIsOneMessage: a switch that finishes its messages is not taken for
// one that does not, though the beginning of the next is always there.
func TestUnfinishedIsOneMessage(t *testing.T) {
	for _, early := range []bool{false, true} {
		sessions, ends := gatheringHub(t, 1)
		s := sessions[0]
		s.shared.watch = watch.New()
		ctx, cancel := context.WithCancel(t.Context())
		var watching, work sync.WaitGroup
		watching.Go(func() { _ = s.shared.watch.Run(ctx, func(time.Time) {}) }) // until ctx ends
		if early {
			s.alive.pulse.until.Store(math.MaxInt64)
		}
		work.Go(func() { _ = s.receive() }) // until its end is closed
		one := numbered(t, nil, 0, 0, 1)
		half := len(one) / 2
		begun := func(after int64) int64 {
			for end := time.Now().Add(testwait.Limit); s.alive.partial.Load() <= after && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			return s.alive.partial.Load()
		}
		if _, err := ends[0].Write(one[:half]); err != nil {
			t.Fatal(err)
		}
		first := begun(0)
		if _, err := ends[0].Write(append(one[half:len(one):len(one)], one[:half]...)); err != nil {
			t.Fatal(err)
		}
		if second := begun(first); first == 0 || second <= first {
			t.Errorf("read early %v: the second message is unfinished since %d, the first since %d", early, second, first)
		}
		if _, err := ends[0].Write(one[half : half+1]); err != nil {
			t.Fatal(err)
		}
		ends[0].Close()
		work.Wait()
		cancel()
		watching.Wait()
	}
}

// TestFewMessagesAreReadOnce: a message that comes alone costs one read, by the
// watch; its goroutine does not look for another before it waits.
func TestFewMessagesAreReadOnce(t *testing.T) {
	sessions, ends := gatheringHub(t, 1)
	s := sessions[0]
	s.shared.watch = watch.New()
	ctx, cancel := context.WithCancel(t.Context())
	var watching, work sync.WaitGroup
	watching.Go(func() { _ = s.shared.watch.Run(ctx, func(time.Time) {}) }) // until ctx ends
	s.alive.pulse.until.Store(math.MaxInt64)
	var reads atomic.Int32
	read := s.in.early.read
	s.in.early.read = func(fd uintptr) bool {
		reads.Add(1)
		return read(fd)
	}
	work.Go(func() { _ = s.receive() }) // until its end is closed
	const messages = 100
	answer := make([]byte, 4096)
	for i := range messages {
		if _, err := ends[0].Write(numbered(t, nil, 0, i, i+1)); err != nil {
			t.Fatal(err)
		}
		if _, err := ends[0].Read(answer); err != nil {
			t.Fatal(err)
		}
	}
	if n := reads.Load(); n > messages+2 {
		t.Errorf("%d reads of %d messages", n, messages)
	}
	ends[0].Close()
	work.Wait()
	cancel()
	watching.Wait()
}
