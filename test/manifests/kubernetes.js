export { PodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
export { Deployment } from 'kubernetes-models/apps/v1/Deployment';
export { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
export { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
export { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
export { Secret } from 'kubernetes-models/v1/Secret';
export { Service } from 'kubernetes-models/v1/Service';
