package openflow

// TableStats is the counters of a flow table (OpenFlow 1.3.5 §7.3.5.4).
type TableStats struct {
	Table      uint8
	Active     uint32 // entries
	Lookups    uint64 // packets looked up
	Matched    uint64 // packets that hit
	Name       string // OpenFlow 1.0 only, and so are the following
	Wildcards  uint32 // OFPFW_*
	MaxEntries uint32
}

const (
	tableStatsLen   = 24
	tableStatsLen10 = 64
	tableNameLen    = 32
)

// AppendTableStats appends one table to the body of a table statistics reply.
func (v Version) AppendTableStats(dst []byte, s *TableStats) []byte {
	dst = be.AppendUint32(dst, uint32(s.Table)<<24)
	if v == V10 {
		dst = appendName(dst, s.Name, tableNameLen)
		dst = be.AppendUint32(dst, s.Wildcards)
		dst = be.AppendUint32(dst, s.MaxEntries)
	}
	dst = be.AppendUint32(dst, s.Active)
	dst = be.AppendUint64(dst, s.Lookups)
	return be.AppendUint64(dst, s.Matched)
}

// DecodeTableStats appends the tables in the body of a table statistics reply
// to dst.
func (v Version) DecodeTableStats(body []byte, dst []TableStats) ([]TableStats, error) {
	n := tableStatsLen
	if v == V10 {
		n = tableStatsLen10
	}
	if err := v.checkRecords(body, n); err != nil {
		return dst, err
	}
	for ; len(body) > 0; body = body[n:] {
		s, b := TableStats{Table: body[0]}, body[4:]
		if v == V10 {
			s.Name, s.Wildcards, s.MaxEntries = name(b[:tableNameLen]), be.Uint32(b[32:]), be.Uint32(b[36:])
			b = b[40:]
		}
		s.Active, s.Lookups, s.Matched = be.Uint32(b), be.Uint64(b[4:]), be.Uint64(b[12:])
		dst = append(dst, s)
	}
	return dst, nil
}
