package sim

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
)

// startResponder runs a responder and returns its address.
func startResponder(t *testing.T, r *Responder) string {
	t.Helper()
	ln := listen(t).(*net.TCPListener)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// TestResponder: it answers packet-ins and echoes, and asks for echoes, each of
// which is answered.
func TestResponder(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		r := &Responder{Rate: 20}
		n := start(t, Config{Topology: isolated(t, 4, 8, 4), Version: v, Address: startResponder(t, r)})
		ctx := within(t, testwait.Limit)
		if err := n.WaitUp(ctx, 0); err != nil {
			t.Fatal(err)
		}
		loaded := make(chan error, 1)
		go func() {
			m, err := n.Measure(ctx, Load{Window: 64, Rate: 5000, Duration: 150 * time.Millisecond, Patience: testwait.Limit})
			if err == nil && (m.Lost+m.Wrong != 0 || m.Answered == 0) {
				t.Errorf("%+v", m.Counts)
			}
			loaded <- err
		}()
		beats, err := n.MeasureBeats(ctx, Beats{Rate: 100, Duration: 150 * time.Millisecond, Patience: testwait.Limit})
		if end := <-loaded; err == nil {
			err = end
		}
		if err != nil || beats.Answered != beats.Due || beats.Due == 0 {
			t.Fatalf("%+v, %v", beats, err)
		}
		var due, late uint64
		for end := time.Now().Add(testwait.Limit); due < 40 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			due, late = r.Counts()
		}
		if due < 40 || late > due/2 {
			t.Errorf("%d of %d are late", late, due)
		}
	})
}

// TestResponderCountsLate: a switch that does not answer is late each time.
func TestResponderCountsLate(t *testing.T) {
	r := &Responder{Rate: 100}
	c, err := net.Dial("tcp", startResponder(t, r))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(openflow.V13.AppendHello(nil, 1)); err != nil {
		t.Fatal(err)
	}
	var due, late uint64
	for end := time.Now().Add(testwait.Limit); due < 5 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		due, late = r.Counts()
	}
	if due < 5 {
		t.Errorf("%d of %d are late", late, due)
	}
	if due, late = r.Counts(); late+1 < due { // one may be counted between the two
		t.Errorf("%d of %d are late", late, due)
	}
}
