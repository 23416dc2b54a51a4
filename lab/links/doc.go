// Package links makes what a wire of a lab is: a veth pair, two TAP devices between
// which this process carries the frames (Cables), or a VXLAN device, with rates and
// losses. It knows no Open vSwitch.
//
// The packages of labs import it.
package links
