package mux

import (
	"bytes"
	"testing"
	"time"

	"github.com/weft-sdn/weft/transport"
)

var frames = []Frame{
	{Kind: Call, ID: 1, Timeout: time.Second, Total: 3, Name: []byte("hosts.FindHost"), Body: []byte("req")},
	{Kind: Call, ID: 2, More: true, Total: transport.MaxMessage, Name: []byte("m"), Body: []byte("first")},
	{Kind: Call, ID: 1<<64 - 1, Total: 0, Name: []byte("s")},
	{Kind: Data, ID: 3, More: true, Body: []byte("part")},
	{Kind: Cancel, ID: 4},
	{Kind: Result, ID: 5, Total: 4, Body: []byte("resp")},
	{Kind: Failed, ID: 6, Code: 14, Body: []byte("no such host")},
	{Kind: Ping}, {Kind: Pong}, {Kind: Bye},
}

func equal(a, b Frame) bool {
	return a.Kind == b.Kind && a.More == b.More && a.ID == b.ID && a.Timeout == b.Timeout && a.Total == b.Total && a.Code == b.Code &&
		bytes.Equal(a.Name, b.Name) && bytes.Equal(a.Body, b.Body)
}

func TestFrames(t *testing.T) {
	var b []byte
	for _, f := range frames {
		before := len(b)
		if b = f.Append(b); len(b)-before > headroom+len(f.Name)+len(f.Body) {
			t.Errorf("%+v takes %d octets", f, len(b)-before)
		}
	}
	i := 0
	if err := each(b, func(f *Frame) error {
		if !equal(*f, frames[i]) {
			t.Errorf("%+v, want %+v", *f, frames[i])
		}
		i++
		return nil
	}); err != nil || i != len(frames) {
		t.Errorf("%d frames, %v", i, err)
	}
	for _, f := range frames {
		b := f.Append(nil)
		for n := range b {
			if _, err := new(Frame).Decode(b[:n]); err == nil {
				t.Errorf("%+v cut at %d is taken", f, n)
			}
		}
	}
}

func FuzzFrame(f *testing.F) {
	var all []byte
	for _, frame := range frames {
		f.Add(frame.Append(nil))
		all = frame.Append(all)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, b []byte) {
		var frame, again Frame
		rest, err := frame.Decode(b)
		if err != nil {
			return
		}
		if len(rest) >= len(b) || len(frame.Name)+len(frame.Body) > len(b) {
			t.Fatalf("%d octets of %d left, name %d, body %d", len(rest), len(b), len(frame.Name), len(frame.Body))
		}
		if rest, err := again.Decode(frame.Append(nil)); err != nil || len(rest) != 0 || !equal(frame, again) {
			t.Fatalf("%+v comes back as %+v, %v", frame, again, err)
		}
	})
}

// FuzzServer has a connection's listening side take whatever comes.
func FuzzServer(f *testing.F) {
	var all []byte
	for _, frame := range frames {
		f.Add(frame.Append(nil), frame.Append(nil))
		all = frame.Append(all)
	}
	f.Add(all, all)
	f.Fuzz(func(_ *testing.T, first, second []byte) {
		s := NewServer(nothing{}, transport.Heartbeat{})
		l := &script{messages: [][]byte{first, second}}
		s.Serve(l, nil)
		s.Close()
	})
}
