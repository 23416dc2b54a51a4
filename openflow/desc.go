package openflow

// Desc describes a switch (OpenFlow 1.3.5 §7.3.5.1).
type Desc struct {
	Manufacturer string // up to 255 octets
	Hardware     string
	Software     string
	Serial       string // up to 31 octets
	Datapath     string // for people
}

const (
	descStrLen   = 256
	descSerial   = 32
	descLen      = 4*descStrLen + descSerial
	descDatapath = descLen - descStrLen
)

// AppendDesc appends the body of a description reply; strings that are too
// long are cut.
func (v Version) AppendDesc(dst []byte, d *Desc) []byte {
	dst = appendName(dst, d.Manufacturer, descStrLen)
	dst = appendName(dst, d.Hardware, descStrLen)
	dst = appendName(dst, d.Software, descStrLen)
	dst = appendName(dst, d.Serial, descSerial)
	return appendName(dst, d.Datapath, descStrLen)
}

// DecodeDesc reads the body of a description reply.
func (v Version) DecodeDesc(body []byte) (Desc, error) {
	if err := v.checkBody(body, descLen); err != nil {
		return Desc{}, err
	}
	return Desc{
		Manufacturer: name(body[:descStrLen]),
		Hardware:     name(body[descStrLen : 2*descStrLen]),
		Software:     name(body[2*descStrLen : 3*descStrLen]),
		Serial:       name(body[3*descStrLen : descDatapath]),
		Datapath:     name(body[descDatapath:descLen]),
	}, nil
}
