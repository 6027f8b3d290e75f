package fleet

import "github.com/lockstep-project/lockstep/simulator/inputs/fleet/devices"

// Accelerators counts, by node, the whole accelerators that drivers publish and that are not in use otherwise. Nodes
// without published accelerators are not in it.
func (f Fleet) Accelerators() map[string]int64 {
	count := make(map[string]int64)
	for _, slice := range f.Slices {
		if slice.Spec.NodeName == nil {
			continue
		}
		for _, device := range slice.Spec.Devices {
			if devices.IsAccelerator(slice.Spec.Driver, device) && len(device.Taints) == 0 {
				count[*slice.Spec.NodeName]++
			}
		}
	}
	return count
}
