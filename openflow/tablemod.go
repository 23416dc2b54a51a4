package openflow

// TableMod configures a table (OpenFlow 1.3.5 §7.3.3).
type TableMod struct {
	Table  uint8 // flow.TableAll for all
	Config uint32
}

// AppendTableMod appends a table-mod.
func (v Version) AppendTableMod(dst []byte, xid uint32, m *TableMod) ([]byte, error) {
	if v == V10 {
		return dst, unsupported(v, "table-mod", "table configuration", badRequestType)
	}
	start := len(dst)
	dst = appendHeader(dst, v, uint8(TypeTableMod), xid)
	dst = be.AppendUint64(dst, uint64(m.Table)<<56|uint64(m.Config))
	return finish(dst, start, TypeTableMod)
}

// DecodeTableMod reads a table-mod.
func (v Version) DecodeTableMod(msg []byte) (TableMod, error) {
	if len(msg) < 16 {
		return TableMod{}, malformed(TypeTableMod, len(msg), "cut short", badRequestLen)
	}
	return TableMod{Table: msg[8], Config: be.Uint32(msg[12:])}, nil
}
