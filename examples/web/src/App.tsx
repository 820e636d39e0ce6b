import { CreateLink } from './CreateLink.js';
import { FollowJob } from './FollowJob.js';
import { FollowTaxpayer } from './FollowTaxpayer.js';

export function App() {
  return (
    <>
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <header>
        <p className="brand">Taxpayer gateway</p>
        <h1>Back office</h1>
        <p>Invite a taxpayer, follow the authorization, watch the data arrive.</p>
      </header>
      <main id="main" tabIndex={-1}>
        <CreateLink />
        <div className="column">
          <FollowTaxpayer />
          <FollowJob />
        </div>
      </main>
    </>
  );
}
