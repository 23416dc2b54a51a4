package balancer

import (
	"encoding/binary"
	"testing"
)

// http2Frame is a frame of HTTP/2 of a type and a stream, with so many octets.
func http2Frame(kind uint8, stream uint32, n int) []byte {
	p := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, 0}
	p = binary.BigEndian.AppendUint32(p, stream)
	return append(p, make([]byte, n)...)
}

// TestFrames: where frames begin is found in what two sides of a segment's end may be.
func TestFrames(t *testing.T) {
	whole := append(http2Frame(frameHeaders, 1, 20), http2Frame(0, 1, 300)...)
	for name, x := range map[string]struct {
		parts   [][]byte
		between bool
	}{
		"nothing":             {nil, true},
		"whole":               {[][]byte{whole}, true},
		"a part":              {[][]byte{whole[:100]}, false},
		"in two":              {[][]byte{whole[:100], whole[100:]}, true},
		"a header in two":     {[][]byte{whole[:32], whole[32:]}, false},
		"then found again":    {[][]byte{whole[:32], whole[32:], whole}, true},
		"text":                {[][]byte{[]byte(`{"authType": "5G_AKA"}`)}, false},
		"HTTP/1.1":            {[][]byte{[]byte("HTTP/1.1 200 OK\r\n\r\n")}, false},
		"text in a frame":     {[][]byte{http2Frame(0, 1, 22)[:9], []byte(`{"authType": "5G_AKA"}`)}, true},
		"longer than allowed": {[][]byte{http2Frame(0, 1, 20000)}, false},
	} {
		f := frames{}
		for _, p := range x.parts {
			f.follow(p)
		}
		if f.between() != x.between {
			t.Errorf("%s: between frames: %v, want %v", name, f.between(), x.between)
		}
	}
}
