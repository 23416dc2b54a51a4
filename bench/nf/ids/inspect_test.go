package ids

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// udp returns a frame of UDP over IPv4.
func udp(sport, dport uint16, payload string) []byte {
	b := make([]byte, 42, 42+len(payload))
	b[0], b[6], b[12] = 2, 2, 8
	ip := b[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, protoUDP
	binary.BigEndian.PutUint16(ip[2:], uint16(28+len(payload)))
	copy(ip[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum>>16+sum&0xffff))
	binary.BigEndian.PutUint16(ip[20:], sport)
	binary.BigEndian.PutUint16(ip[22:], dport)
	binary.BigEndian.PutUint16(ip[24:], uint16(8+len(payload)))
	return append(b, payload...)
}

// tagged returns the frame with a tag.
func tagged(b []byte, tpid uint16) []byte {
	out := append(append(slices.Clone(b[:12]), byte(tpid>>8), byte(tpid), 0, 7), b[12:]...)
	return out
}

// tcp6 returns a frame of TCP over IPv6 behind a header of options.
func tcp6(flags byte, payload string) []byte {
	b := make([]byte, 14+40+8+20, 200)
	b[12], b[13] = 0x86, 0xdd
	ip := b[14:]
	ip[0], ip[6], ip[7] = 0x60, protoHopByHop, 3
	binary.BigEndian.PutUint16(ip[4:], uint16(28+len(payload)))
	ip[8], ip[23], ip[24], ip[39] = 0xfd, 1, 0xfd, 2
	ip[40] = protoTCP
	t := ip[48:]
	binary.BigEndian.PutUint16(t, 1234)
	binary.BigEndian.PutUint16(t[2:], 80)
	t[12], t[13] = 5<<4, flags
	return append(b, payload...)
}

func with(b []byte, at int, v ...byte) []byte {
	b = slices.Clone(b)
	copy(b[at:], v)
	return b
}

func TestInspect(t *testing.T) {
	rules, err := ParseRules("f", `
content any text="attack"
content fold text="AtTaCk-two" nocase
content tcp text="attack" protocol=tcp
content web text="attack" dport=80
content end text="k"
content from text="attack" from=10.0.0.0/30
protocol udp9 protocol=udp dport=9
protocol six ethertype=0x86dd
protocol syn flags=S to=fd00::/8
anomaly malformed is=malformed
anomaly checksum is=ip-checksum
anomaly fragment is=fragment
anomaly land is=same-address
anomaly synfin is=syn-fin
anomaly null is=no-flags
anomaly xmas is=all-flags
anomaly multicast is=from-multicast
anomaly zero is=zero-port
anomaly double is=double-tag
anomaly ttl is=ttl-below:4
anomaly big is=size-above:1000
anomaly run is=run-above:20
anomaly dense is=entropy-above:7500
`)
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 2000)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(random)
	plain := udp(1, 7, "hello")
	for _, c := range []struct {
		what  string
		frame []byte
		want  string
	}{
		{"plain", plain, ""},
		{"content", udp(1, 7, "an attack here"), "any end from"},
		{"content, case", udp(1, 7, "aTTACK-TWO"), "fold"},
		{"port", udp(1, 80, "attack"), "any web end from"},
		{"protocol", udp(1, 9, ""), "udp9"},
		{"tag", tagged(udp(1, 9, "attack"), 0x8100), "any end from udp9"},
		{"two tags", tagged(tagged(udp(1, 9, "x"), 0x8100), 0x88a8), "udp9 double"},
		{"IPv6", tcp6(2, "attack"), "any tcp web end six syn ttl"},
		{"flags", tcp6(0x3f, ""), "six syn synfin xmas ttl"},
		{"no flags", tcp6(0, ""), "six null ttl"},
		{"checksum", with(plain, 24, 1, 2), "checksum"},
		{"first fragment", with(plain, 20, 0x20, 0, 64, protoUDP, 0, 0), "checksum fragment"},
		{"later fragment", with(udp(1, 9, "attack"), 20, 0, 9, 64, protoUDP, 0, 0), "any end from checksum fragment"},
		{"land", with(plain, 24, 0, 0, 10, 0, 0, 2), "checksum land"},
		{"multicast", with(plain, 24, 0, 0, 224), "checksum multicast"},
		{"no port", udp(0, 7, ""), "zero"},
		{"short frame", []byte{1, 2, 3}, "malformed"},
		{"cut header", plain[:30], "malformed"},
		{"cut tag", tagged(plain, 0x8100)[:15], "malformed"},
		{"wrong version", with(plain, 14, 0x65), "malformed"},
		{"length beyond the frame", with(plain, 16, 0xff, 0xff), "malformed"},
		{"length of UDP", with(plain, 38, 0xff, 0xff), "malformed"},
		{"IPv6 cut", tcp6(2, "")[:50], "six malformed"},
		{"run", udp(1, 7, strings.Repeat("z", 21)), "run"},
		{"big and dense", udp(1, 7, string(random)), "big dense"},
	} {
		for _, oneByOne := range []bool{false, true} {
			i := NewInspector(rules, oneByOne)
			_ = i.Inspect(udp(1, 80, "attack")) // leaves nothing
			var got []string
			for n, r := range rules { // in their order
				if slices.Contains(i.Inspect(c.frame), n) {
					got = append(got, r.Name)
				}
			}
			want := strings.Fields(c.want)
			if c.what == "big and dense" { // 2,000 random bytes have a k
				want = append([]string{"end"}, want...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, one by one %v: %v, want %v", c.what, oneByOne, got, want)
			}
		}
	}
}

// The automaton finds what a search for each text finds.
func TestAutomatonAgainstSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := "abAB\x00\xff"
	draw := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return b
	}
	for range 300 {
		var rules []Rule
		for n := range 1 + random.IntN(40) {
			rules = append(rules, Rule{Kind: Content, Name: fmt.Sprint(n), ethertype: -1, protocol: -1, text: draw(1 + random.IntN(6)), nocase: random.IntN(2) == 0})
		}
		together, alone := NewInspector(rules, false), NewInspector(rules, true)
		for range 10 {
			frame := udp(1, 2, string(draw(random.IntN(60))))
			got, want := slices.Clone(together.Inspect(frame)), alone.Inspect(frame)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Fatalf("texts %v in %q: %v, want %v", rules, frame[42:], got, want)
			}
		}
	}
	// and all bytes there are
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	i := NewInspector([]Rule{{Kind: Content, ethertype: -1, protocol: -1, text: every}}, false)
	if got := i.Inspect(udp(1, 2, "x"+string(every))); len(got) != 1 {
		t.Errorf("a text of all bytes: %v", got)
	}
	if got := i.Inspect(udp(1, 2, strings.ToUpper("x"+string(every)))); len(got) != 0 {
		t.Errorf("in another case: %v", got)
	}
}

func FuzzInspect(f *testing.F) {
	rules, err := ParseRules("f", Example(200))
	if err != nil {
		f.Fatal(err)
	}
	for _, b := range [][]byte{nil, udp(1, 2, "x"), tagged(udp(1, 2, "x"), 0x8100), tcp6(2, "x"), tcp6(2, "x")[:60], bytes.Repeat([]byte{0x81, 0}, 20)} {
		f.Add(b)
	}
	together, alone := NewInspector(rules, false), NewInspector(rules, true)
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := slices.Clone(frame)
		got, want := slices.Clone(together.Inspect(frame)), slices.Clone(alone.Inspect(frame))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || !bytes.Equal(frame, before) {
			t.Errorf("%x: %v, one by one %v", frame, got, want)
		}
	})
}

func FuzzRules(f *testing.F) {
	f.Add(Example(30))
	f.Add("content a text=\"\\x90\" sport=1-2 flags=S")
	f.Fuzz(func(t *testing.T, text string) {
		if rules, err := ParseRules("f", text); err == nil {
			i := NewInspector(rules, false)
			i.Inspect(udp(1, 2, text))
			i.Inspect(tcp6(2, "x"))
		}
	})
}

func BenchmarkInspect(b *testing.B) {
	rules, err := ParseRules("f", Example(200))
	if err != nil {
		b.Fatal(err)
	}
	frame := udp(20000, 5000, strings.Repeat(".", 972))
	for name, oneByOne := range map[string]bool{"together": false, "one by one": true} {
		b.Run(name, func(b *testing.B) {
			i := NewInspector(rules, oneByOne)
			for b.Loop() {
				i.Inspect(frame)
			}
		})
	}
}

// An address is compared whatever its family.
func TestAddresses(t *testing.T) {
	r := Rule{Kind: Protocol, ethertype: -1, protocol: -1, from: netip.MustParsePrefix("fd00::/8")}
	i := NewInspector([]Rule{r}, false)
	if len(i.Inspect(udp(1, 2, ""))) != 0 || len(i.Inspect(tcp6(2, ""))) != 1 {
		t.Error("a rule for IPv6 addresses is wrong")
	}
}
