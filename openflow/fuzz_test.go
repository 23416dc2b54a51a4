package openflow

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// FuzzDecode gives octets to every decoder of both versions. What is decoded
// must be encodable to something that is decoded to the same once more.
func FuzzDecode(f *testing.F) {
	for _, m := range malformedMessages() {
		f.Add(m.msg)
	}
	r := rand.New(rand.NewPCG(4, 4))
	for _, c := range codecs() {
		for _, v := range c.versions {
			for range 3 {
				msg, err := c.encode(v, nil, 1, c.random(r, v))
				if err != nil {
					f.Fatal(err)
				}
				f.Add(msg)
			}
		}
	}
	all := codecs()
	f.Fuzz(func(t *testing.T, b []byte) {
		for rest := b; ; {
			msg, next, err := Next(rest)
			if err != nil || msg == nil {
				break
			}
			if _, err := ParseHeader(msg); err != nil {
				t.Fatalf("Next cut %x: %v", msg, err)
			}
			rest = next
		}
		for i := range all {
			c := &all[i]
			for _, v := range c.versions {
				before := bytes.Clone(b)
				x, err := c.decode(v, b)
				if !bytes.Equal(b, before) {
					t.Fatalf("%s changed the message", c.name)
				}
				if err != nil {
					continue
				}
				once, err := c.encode(v, nil, 1, x)
				if err != nil {
					continue // decoded more than can be encoded: experimenters' bands
				}
				y, err := c.decode(v, once)
				if err != nil {
					t.Fatalf("%s: encoded %x from %x: %v", c.name, once, b, err)
				}
				twice, err := c.encode(v, nil, 1, y)
				if err != nil || !bytes.Equal(once, twice) {
					t.Fatalf("%s of %s: %x\nencoded %x\nand then %x (%v)", c.name, v, b, once, twice, err)
				}
			}
		}
	})
}
