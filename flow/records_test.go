package flow

import "testing"

// BenchmarkRecords is a decision of the kind that crosses most, with a record
// and without.
func BenchmarkRecords(b *testing.B) {
	var d, e Decision
	m := d.AddFlow(1)
	m.Entry.Priority, m.Entry.Cookie, m.Entry.IdleTimeout = 100, NewCookie(OwnerRoutes, 1, 1), 60
	m.Entry.Match = Match{}.WithInPort(1).WithEthSrc(MAC{1}).WithEthDst(MAC{2}).WithoutVLAN()
	m.Entry.Apply = d.Output(2)
	for _, c := range []struct {
		name   string
		encode func([]byte) ([]byte, error)
	}{{"binary", d.AppendBinary}, {"records", d.AppendRecords}} {
		buf, _ := c.encode(nil)
		b.Run("append/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = c.encode(buf[:0])
			}
			b.ReportMetric(float64(len(buf)), "octets")
		})
		b.Run("read/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := e.UnmarshalBinary(buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
