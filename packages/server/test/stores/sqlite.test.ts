import { keyStoreSuite } from './key-store-suite.ts';
import { quotaSuite } from './quota-suite.ts';
import { requestStateMachineSuite } from './request-state-machine-suite.ts';
import { requestStoreSuite } from './request-store-suite.ts';
import { local, threaded } from './support/factories.ts';
import { webhookStoreSuite } from './webhook-store-suite.ts';

for (const factory of [local, threaded]) {
  requestStoreSuite(factory);
  keyStoreSuite(factory);
  quotaSuite(factory);
  webhookStoreSuite(factory);
}
requestStateMachineSuite(local);
